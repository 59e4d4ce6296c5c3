"""The text form of a case file: parser and writer."""
