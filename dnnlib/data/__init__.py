"""Files as people have them: folders of images, Parquet, lists, tables, sound."""
