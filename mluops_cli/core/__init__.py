"""What every part of a run shares: settings, discovery, events, records."""
