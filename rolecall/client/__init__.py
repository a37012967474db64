"""What happens on the side of the user: submitting, watching, telling, delivering."""
