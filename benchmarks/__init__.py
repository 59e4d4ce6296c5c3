"""Speed of mluops as ratios against something plain in the same run; `make bench` prints them, no test asserts them."""
