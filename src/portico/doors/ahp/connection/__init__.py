"""Who is connected, what each of them hears, and how it comes back. The top floor: it may import all of this door."""
