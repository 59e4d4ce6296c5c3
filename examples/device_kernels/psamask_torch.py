"""psamask_forward on torch tensors, for `--impl torch:psamask_torch.py:psamask,device=cuda`."""


def psamask(op, inputs, outputs, params):
    if op != "psamask_forward":
        return "NOT_SUPPORTED"
    x, y = inputs["x"], outputs["y"]  # torch tensors on the device; None for a null pointer
    psa_type, h_mask, w_mask = params["psa_type"], params["h_mask"], params["w_mask"]
    if x is None or y is None or x.dim() != 4 or psa_type not in (0, 1) or min(h_mask, w_mask) < 1:
        return "BAD_PARAM"
    N, H, W, cells = x.shape
    if cells != h_mask * w_mask or y.shape != (N, H, W, H * W) or {str(x.dtype), str(y.dtype)} != {"torch.float32"}:
        return "BAD_PARAM"
    mask, target = x.view(N, H, W, h_mask, w_mask), y.view(N, H, W, H, W)
    y.zero_()  # outputs hold NaN and huge numbers before the call
    for h in range(H):
        for w in range(W):
            up, left = (h_mask - 1) // 2 - h, (w_mask - 1) // 2 - w  # of the mask cell at the feature's corner
            rows = slice(max(0, up), max(0, min(h_mask, H + up)))
            columns = slice(max(0, left), max(0, min(w_mask, W + left)))
            i = slice(rows.start - up, rows.stop - up)
            j = slice(columns.start - left, columns.stop - left)
            if i.stop > i.start and j.stop > j.start:
                part = mask[:, h, w, rows, columns]
                if psa_type == 0:
                    target[:, h, w, i, j] = part
                else:
                    target[:, i, j, h, w] = part
    return "SUCCESS"
