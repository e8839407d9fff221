"""Sessions as documents: archives that another host takes in, and copied turns as events. May import the core."""
