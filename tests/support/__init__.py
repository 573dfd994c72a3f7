"""What tests share. Nothing here is a test."""
