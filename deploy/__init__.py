"""The image and what goes into it: packages and their licences, the check of its pages, the proxy."""
