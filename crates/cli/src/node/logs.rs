//! Logs of attempts, read from the home.
