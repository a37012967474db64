"""`rename.symbol`: a name and all that refer to it.

Scopes decide what Python decides by looking (names, imports); engines that know types decide the rest; what nobody
can decide is published.
"""
