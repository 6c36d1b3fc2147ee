"""What the black-box tests share: the server under test, and the three bindings from outside."""
