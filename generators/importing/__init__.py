"""Case files and configs of others turned into specs of ours."""
