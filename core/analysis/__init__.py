"""Arrays in, figures with intervals out; one file per measure."""
