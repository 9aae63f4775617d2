"""Models of the zoo with open sizes on several devices."""
