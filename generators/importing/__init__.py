"""Case files and configs of others turned into specs of ours, and into the contract that case files have in common."""
