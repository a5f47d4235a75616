"""A paper's systems side by side: which runs there are to be, training them as processes, and the page that compares them."""
