"""Reports of a run: console, HTML, Markdown, CSV, JUnit, annotations for CI servers."""
