"""The shell: Pykka actors, each a thread, an inbox and one delegate call (spec 6.1)."""
