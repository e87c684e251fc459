"""How every disk of the service stands: the rule of data.life_cycle applied to what is known, kept and written down."""
