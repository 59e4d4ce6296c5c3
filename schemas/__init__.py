"""The lowest layer: the case-file schema, reading and writing case files, dtypes and layouts."""
