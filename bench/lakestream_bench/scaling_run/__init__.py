"""Records how a LakeStream on a cluster is scaled."""
