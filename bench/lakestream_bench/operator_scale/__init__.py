"""How one operator copes with a thousand LakeStreams: the real operator and a real API server, drivers simulated."""
