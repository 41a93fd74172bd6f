"""What runs on the other side: a launcher, a zygote with libraries loaded, and the workers it forks.

These modules are started by path in a bare interpreter, so they import the standard library and each other only.
"""
