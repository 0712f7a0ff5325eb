"""Where messages wait: folders, SFTP, object stores and relays, all behind one interface."""
