"""Shapes of small C functions. NAME, SYMBOL and K are filled in; no code does without the number K."""

SHAPES: dict[str, str] = {
    "add_after": "int NAME(int x) { return SYMBOL(x) + K; }\n",
    "scaled": "int NAME(int x) { return SYMBOL(x) * K; }\n",
    "before_call": "int NAME(int x) { return SYMBOL(x + K); }\n",
    "clamped": "int NAME(int x) { int y = SYMBOL(x); if (y < 0) return 0; return y > K ? K : y; }\n",
    "summed": "int NAME(int n) { int s = K; for (int i = 0; i < n; i++) s += SYMBOL(i); return s; }\n",
    "first_over": "int NAME(int n) { for (int i = 0; i < n; i++) if (SYMBOL(i) > K) return i; return -1; }\n",
    "branch": "int NAME(int a, int b) { if (a > b) return SYMBOL(a - K); return SYMBOL(b); }\n",
    "twice": "int NAME(int x) { return SYMBOL(SYMBOL(x)) ^ K; }\n",
    "masked": "unsigned NAME(unsigned x) { return (SYMBOL(x) & 0xffu) | (K << 8); }\n",
    "shifted": "unsigned NAME(unsigned x) { return (x >> 3) + SYMBOL(x) + K; }\n",
    "counted_down": "int NAME(int x) { int n = 0; while (x > 0) { x = SYMBOL(x) - K; n++; } return n; }\n",
    "stored": "void NAME(int *p, int x) { p[0] = SYMBOL(x); p[1] = K; }\n",
    "filled": "void NAME(int *p, int n) { while (n-- > 0) *p++ = SYMBOL(n) + K; }\n",
    "largest": "int NAME(const int *p, int n) { int m = K; while (n-- > 0) { int v = SYMBOL(p[n]);"
    " if (v > m) m = v; } return m; }\n",
    "switch_like": "int NAME(int x) { if (x == 1) return K; if (x == 2) return SYMBOL(x); return 0; }\n",
    "both": "int NAME(int x) { return SYMBOL(x) == K && x > 0; }\n",
    "either": "int NAME(int x) { return x < 0 || SYMBOL(x) == K; }\n",
    "swapped": "int NAME(int *a, int *b) { int t = *a; *a = *b; *b = t; return SYMBOL(t) + K; }\n",
    "packed": "unsigned NAME(unsigned a, unsigned b) { return (a << 16 | (b & 255u)) ^ (SYMBOL(b) + K); }\n",
    "strided": "int NAME(const int *p) { return p[0] + p[4] + SYMBOL(p[8]) + K; }\n",
    "chained": "int NAME(int x) { int y = SYMBOL(x); y = y * 5 + K; return SYMBOL(y); }\n",
    "guarded": "int NAME(const int *p) { if (!p) return K; return SYMBOL(*p); }\n",
    "mixed": "long NAME(long a, int b) { return a * K + SYMBOL(b); }\n",
    "copied": "int NAME(int *to, const int *from, int n) { int i; for (i = 0; i < n && from[i] != K; i++)"
    " to[i] = SYMBOL(from[i]); return i; }\n",
}
