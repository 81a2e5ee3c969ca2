"""Looking at the unusable records that writers have kept."""
