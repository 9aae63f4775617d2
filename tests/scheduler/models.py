"""Two small networks, written as importers leave them: an attention layer and a convolutional one."""

from scheduler.graphs import make_graph

from tilec.ir.graph import Graph


def attention(batch: int | str = 2, tokens: int | str = 6, heads: int = 2, width: int = 8) -> Graph:
    """Multi-head attention with residual and layer normalisation; the scores' factor stands behind the head split."""
    n = heads * width
    e: dict[str, int | str] = {"b": batch, "s": tokens, "h": heads, "d": width, "n": n, "k": n, "t": tokens}
    nodes: list[tuple[str, dict[str, int | str]]] = []
    for x in "qkv":
        nodes += [
            (f"{x}_product[b, s, n] = sum(k, x[b, s, k] * {x}_weight[k, n])", e),
            (f"{x}_sum[b, s, n] = {x}_product[b, s, n] + {x}_bias[n]", e),
            (f"{x}_split[b, s, h, d] = {x}_sum[b, s, h*{width} + d]", e),
            (f"{x}[b, h, s, d] = {x}_split[b, s, h, d]", e),
        ]
    nodes += [
        ("k_turned[b, h, d, t] = k[b, h, t, d]", e),
        ("q_scaled[b, h, s, d] = q[b, h, s, d] * root[()]", e),
        ("score[b, h, s, t] = sum(d, q_scaled[b, h, s, d] * k_turned[b, h, d, t])", e),
        ("masked[b, h, s, t] = score[b, h, s, t] + mask[b, 0, 0, t]", e),
        ("top[b, h, s] = max(t, masked[b, h, s, t])", e),
        ("e[b, h, s, t] = exp(masked[b, h, s, t] - top[b, h, s])", e),
        ("total[b, h, s] = sum(t, e[b, h, s, t])", e),
        ("p[b, h, s, t] = e[b, h, s, t] / total[b, h, s]", e),
        ("mix[b, h, s, d] = sum(t, p[b, h, s, t] * v[b, h, t, d])", e),
        ("mix_turned[b, s, h, d] = mix[b, h, s, d]", e),
        (f"joined[b, s, n] = mix_turned[b, s, n // {width}, n % {width}]", e),
        ("o_product[b, s, n] = sum(k, joined[b, s, k] * o_weight[k, n])", e),
        ("y[b, s, n] = o_product[b, s, n] + x[b, s, n]", e),
        ("mean_sum[b, s] = sum(n, y[b, s, n])", e),
        (f"mean[b, s] = mean_sum[b, s] / {float(n)}", e),
        ("centered[b, s, n] = y[b, s, n] - mean[b, s]", e),
        ("square[b, s, n] = centered[b, s, n] * centered[b, s, n]", e),
        ("variance_sum[b, s] = sum(n, square[b, s, n])", e),
        (f"variance[b, s] = variance_sum[b, s] / {float(n)}", e),
        ("inverse[b, s] = 1.0 / sqrt(variance[b, s] + 1e-05)", e),
        ("normal[b, s, n] = centered[b, s, n] * inverse[b, s]", e),
        ("out[b, s, n] = normal[b, s, n] * gain[n] + shift[n]", e),
    ]
    weights = {f"{x}_weight": (n, n) for x in "qkvo"}
    vectors = dict.fromkeys(("q_bias", "k_bias", "v_bias", "gain", "shift"), (n,))
    inputs = {"x": (batch, tokens, n), "mask": (batch, 1, 1, tokens)}
    symbols = [s for s in (batch, tokens) if isinstance(s, str)]
    return make_graph(inputs, nodes, ["out"], {**weights, **vectors, "root": ()}, symbols)


def convolutions(size: int = 9) -> Graph:
    """Padded 3x3 convolution of stride 2, depthwise 3x3, pointwise, each with scale and ReLU; a residual; pooling."""
    half = (size + 1) // 2
    e = {"n": 1, "h": half, "w": half, "r": 3, "s": 3}
    pad = "{i} >= 0 and {i} < {n}"

    def padded(x: str, channel: str, stride: int, extent: int) -> str:
        i, j = f"h*{stride} + r - 1", f"w*{stride} + s - 1"
        inside = f"{pad.format(i=i, n=extent)} and {pad.format(i=j, n=extent)}"
        return f"where({inside}, {x}[n, {channel}, {i}, {j}], 0.0)"

    nodes: list[tuple[str, dict[str, int | str]]] = [
        (f"a[n, o, h, w] = sum(c, r, s, {padded('x', 'c', 2, size)} * a_weight[o, c, r, s])", {**e, "o": 6, "c": 3}),
        ("a_scaled[n, o, h, w] = a[n, o, h, w] * factor[o] + offset[o]", {**e, "o": 6}),
        ("a_relu[n, o, h, w] = maximum(a_scaled[n, o, h, w], 0.0)", {**e, "o": 6}),
        (f"d[n, o, h, w] = sum(r, s, {padded('a_relu', 'o', 1, half)} * d_weight[o, 0, r, s])", {**e, "o": 6}),
        ("d_relu[n, o, h, w] = maximum(d[n, o, h, w], 0.0)", {**e, "o": 6}),
        ("p[n, o, h, w] = sum(c, d_relu[n, c, h, w] * p_weight[o, c, 0, 0])", {**e, "o": 6, "c": 6}),
        ("y[n, o, h, w] = p[n, o, h, w] + a_relu[n, o, h, w]", {**e, "o": 6}),
        ("pooled[n, o] = sum(h, w, y[n, o, h, w])", {**e, "o": 6}),
        ("logits[n, m] = sum(o, pooled[n, o] * l_weight[m, o])", {**e, "o": 6, "m": 5}),
    ]
    constants = {
        "a_weight": (6, 3, 3, 3),
        "factor": (6,),
        "offset": (6,),
        "d_weight": (6, 1, 3, 3),
        "p_weight": (6, 6, 1, 1),
        "l_weight": (5, 6),
    }
    return make_graph({"x": (1, 3, size, size)}, nodes, ["logits"], constants)
