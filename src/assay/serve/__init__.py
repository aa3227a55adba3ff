"""Web app: explain and edit attention live, browse runs, start audits. Local by default; all output is escaped."""
