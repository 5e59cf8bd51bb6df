"""The Containerfiles, really built, beside the images of the test builder."""
