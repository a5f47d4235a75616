"""Fine-tuning of a pre-trained network on the five tasks, and zero-shot scores."""
