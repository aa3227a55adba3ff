"""The web app: explain and edit live, browse runs, start audits. It binds to this machine and escapes everything."""
