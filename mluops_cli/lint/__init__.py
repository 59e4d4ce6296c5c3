"""The rules of `mluops check`: what is wrong or odd in a case file. Nothing is run."""
