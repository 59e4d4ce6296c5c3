"""A case file that another generator made, with values that no distribution gives."""

from __future__ import annotations

THEIRS = """op_name: "psamask_forward"
input { id: "input" shape { dims: [1, 2, 2, 3] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT
  value_f: [1.5, 9, 2, 7, -1, 0.1, 3.25, 8, 8.5, 7, 11, 12] }
output { id: "output" shape { dims: [1, 2, 2, 4] } layout: LAYOUT_NHWC dtype: DTYPE_FLOAT }
psamask_forward_param { h_mask: 1 w_mask: 3 psa_type: 0 }
test_param { error_func: DIFF3 error_threshold: 0.001 baseline_device: CPU }
"""
