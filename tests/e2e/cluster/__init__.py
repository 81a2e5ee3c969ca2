"""The cluster that end-to-end tests run on, as its users see it: kubectl, helm, S3 through a forwarded port."""
