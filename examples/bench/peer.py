"""PyTorch on the benchmark workloads: the same models, batches, losses and optimisers as examples/bench/workloads (name, mode -> times).

As a worker of compare.py: reads a number of steps a line, answers with their milliseconds; the first answer is for the first step.

    python peer.py WORKLOAD eager|compile [--infer] [--cpu]
"""
import json
import math
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


# ---- blocks ---------------------------------------------------------------------------------------

def conv_bn(i, o, k, stride=1, pad=0):
    return nn.Sequential(nn.Conv2d(i, o, k, stride, pad, bias=False), nn.BatchNorm2d(o))


class Residual(nn.Module):
    """Two 3x3 convolutions, or 1x1 - 3x3 - 1x1 to four times the width, with a shortcut."""

    def __init__(self, i, width, stride, deep):
        super().__init__()
        o = 4 * width if deep else width
        if deep:
            self.body = nn.Sequential(conv_bn(i, width, 1), nn.ReLU(), conv_bn(width, width, 3, stride, 1), nn.ReLU(), conv_bn(width, o, 1))
        else:
            self.body = nn.Sequential(conv_bn(i, width, 3, stride, 1), nn.ReLU(), conv_bn(width, o, 3, 1, 1))
        self.short = nn.Identity() if stride == 1 and i == o else conv_bn(i, o, 1, stride)

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


def resnet(stem, counts, deep, classes):
    layers, i = list(stem), 64
    for level, count in enumerate(counts):
        for k in range(count):
            width = 64 << level
            layers.append(Residual(i, width, 2 if level and not k else 1, deep))
            i = 4 * width if deep else width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, classes))


class Transformer(nn.Module):
    """Pre-norm block: attention, then a GELU network of four times the width."""

    def __init__(self, d, heads, causal, drop):
        super().__init__()
        self.heads, self.causal, self.drop = heads, causal, nn.Dropout(drop)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(n, t, d)
        x = x + self.drop(self.proj(y))
        return x + self.drop(self.down(F.gelu(self.up(self.n2(x)))))


class Language(nn.Module):
    """GPT with a tied head."""

    def __init__(self, words, context, d, heads, layers, drop):
        super().__init__()
        self.words, self.places = nn.Embedding(words, d), nn.Embedding(context, d)
        self.blocks = nn.Sequential(*[Transformer(d, heads, True, drop) for _ in range(layers)])
        self.norm = nn.LayerNorm(d)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, 0, 0.02)

    def forward(self, x):
        h = self.norm(self.blocks(self.words(x) + self.places.weight[:x.shape[1]]))
        return F.linear(h, self.words.weight).flatten(0, 1)


class Bert(nn.Module):
    def __init__(self, words=30522, context=512, d=768, heads=12, layers=12, drop=0.1):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(words, d), nn.Embedding(context, d), nn.LayerNorm(d)
        self.blocks = nn.Sequential(*[Transformer(d, heads, False, drop) for _ in range(layers)])
        self.pool, self.classes = nn.Linear(d, d), nn.Linear(d, 2)

    def forward(self, x):
        h = self.blocks(self.norm(self.words(x) + self.places.weight[:x.shape[1]]))
        return self.classes(torch.tanh(self.pool(h[:, 0])))


class Vit(nn.Module):
    def __init__(self, d=384, heads=6, layers=12, patch=16, size=224, classes=1000):
        super().__init__()
        self.patch = nn.Conv2d(3, d, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, d))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, d) * 0.02)
        self.blocks = nn.Sequential(*[Transformer(d, heads, False, 0.0) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, classes)

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.cls.expand(len(h), -1, -1), h], 1) + self.places
        return self.head(self.norm(self.blocks(h)[:, 0]))


class CharLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.head = nn.Embedding(65, 128), nn.LSTM(128, 512, 2, batch_first=True), nn.Linear(512, 65)

    def forward(self, x):
        return self.head(self.lstm(self.words(x))[0]).flatten(0, 1)


class UnetBlock(nn.Module):
    """GroupNorm - SiLU - convolution twice, the time added between."""

    def __init__(self, i, o):
        super().__init__()
        self.n1, self.c1, self.n2, self.c2 = nn.GroupNorm(8, i), nn.Conv2d(i, o, 3, 1, 1), nn.GroupNorm(8, o), nn.Conv2d(o, o, 3, 1, 1)
        self.time, self.short = nn.Linear(256, o), nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, t):
        y = self.c1(F.silu(self.n1(x))) + self.time(t)[:, :, None, None]
        return self.short(x) + self.c2(F.silu(self.n2(y)))


class UnetAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(8, c), nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        n, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, 3, 1, c, h * w).transpose(3, 4).unbind(1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(n, c, h, w))


class Unet(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(64, 256), nn.SiLU(), nn.Linear(256, 256))
        self.inp, self.d1, self.p1 = nn.Conv2d(3, c, 3, 1, 1), UnetBlock(c, c), nn.Conv2d(c, c, 3, 2, 1)
        self.d2, self.a2, self.p2 = UnetBlock(c, 2 * c), UnetAttention(2 * c), nn.Conv2d(2 * c, 2 * c, 3, 2, 1)
        self.m1, self.ma, self.m2 = UnetBlock(2 * c, 2 * c), UnetAttention(2 * c), UnetBlock(2 * c, 2 * c)
        self.u2, self.b2, self.u1 = UnetBlock(4 * c, 2 * c), UnetAttention(2 * c), UnetBlock(3 * c, c)
        self.norm, self.out = nn.GroupNorm(8, c), nn.Conv2d(c, 3, 3, 1, 1)

    def forward(self, pair):
        x, t = pair
        a = t[:, None] * torch.exp(torch.arange(32) * (-math.log(10000.0) / 32))[None]
        t = self.time(torch.cat([a.sin(), a.cos()], 1))
        h1 = self.d1(self.inp(x), t)
        h2 = self.a2(self.d2(self.p1(h1), t))
        y = self.m2(self.ma(self.m1(self.p2(h2), t)), t)
        y = self.b2(self.u2(torch.cat([F.interpolate(y, scale_factor=2.0), h2], 1), t))
        y = self.u1(torch.cat([F.interpolate(y, scale_factor=2.0), h1], 1), t)
        return self.out(F.silu(self.norm(y)))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.mean, self.spread = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20)
        self.d1, self.d2 = nn.Linear(20, 400), nn.Linear(400, 784)

    def forward(self, x):
        h = F.relu(self.e(x))
        mean, spread = self.mean(h), self.spread(h)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * spread)
        return self.d2(F.relu(self.d1(z))), mean, spread


class Dlrm(nn.Module):
    def __init__(self, rows=10000, tables=26, d=64):
        super().__init__()
        net = lambda *s: nn.Sequential(*[m for i, o in zip(s, s[1:]) for m in (nn.Linear(i, o), nn.ReLU())])
        n = tables + 1
        self.low, self.top = net(13, 512, 256, d), nn.Sequential(net(d + n * (n - 1) // 2, 512, 256), nn.Linear(256, 1))
        self.tables = nn.ModuleList([nn.Embedding(rows, d) for _ in range(tables)])
        self.register_buffer('pairs', torch.tril_indices(n, n, -1))

    def forward(self, pair):
        x, idx = pair
        b = self.low(x)
        z = torch.stack([b] + [t(idx[:, i]) for i, t in enumerate(self.tables)], 1)
        return self.top(torch.cat([b, torch.bmm(z, z.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]], 1)).squeeze(1)


class Fuse(nn.Module):
    def __init__(self, d=4096):
        super().__init__()
        self.n1, self.n2, self.drop = nn.LayerNorm(d), nn.LayerNorm(d), nn.Dropout(0.1)

    def forward(self, x):
        y = x + self.drop(F.gelu(self.n1(x)))
        return y + self.drop(F.gelu(self.n2(y)))


# ---- workloads: model, batch (x, target), loss, optimiser ---------------------------------------------

def vae_loss(out, x):
    r, mean, spread = out
    return F.binary_cross_entropy_with_logits(r, x, reduction='sum') - 0.5 * torch.sum(1 + spread - mean ** 2 - spread.exp())


def sgd(lr=0.01, decay=0.0):
    return lambda p, **k: torch.optim.SGD(p, lr=lr, momentum=0.9, weight_decay=decay, **k)


def adamw(lr=3e-4):
    return lambda p, **k: torch.optim.AdamW(p, lr=lr, **k)


def pictures(n, c, size, classes):
    return lambda: (torch.randn(n, c, size, size), torch.randint(classes, (n,)))


def words(n, t, count):
    return lambda: (torch.randint(count, (n, t)), torch.randint(count, (n * t,)))


def dqn():
    return nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(),
                         nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 6))


WORKLOADS = {
    'mlp': (lambda: nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)),
            lambda: (torch.randn(128, 784), torch.randint(10, (128,))), F.cross_entropy, sgd()),
    'lenet': (lambda: nn.Sequential(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                    nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 10)), pictures(128, 1, 28, 10), F.cross_entropy, sgd()),
    'resnet18': (lambda: resnet([conv_bn(3, 64, 3, 1, 1), nn.ReLU()], (2, 2, 2, 2), False, 10), pictures(16, 3, 32, 10), F.cross_entropy, sgd(0.1, 5e-4)),
    'resnet50': (lambda: resnet([conv_bn(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], (3, 4, 6, 3), True, 1000), pictures(4, 3, 224, 1000),
                 F.cross_entropy, sgd(0.1, 1e-4)),
    'charlstm': (CharLstm, words(50, 50, 65), F.cross_entropy, adamw(2e-3)),
    'gptmini': (lambda: Language(65, 256, 384, 6, 6, 0.2), words(4, 256, 65), F.cross_entropy, adamw()),
    'gpt2': (lambda: Language(50304, 1024, 768, 12, 12, 0.0), words(1, 128, 50304), F.cross_entropy, adamw()),
    'bert': (Bert, lambda: (torch.randint(30522, (4, 128)), torch.randint(2, (4,))), F.cross_entropy, adamw(2e-5)),
    'vit': (Vit, pictures(4, 3, 224, 1000), F.cross_entropy, adamw()),
    'unet': (Unet, lambda: ((torch.randn(8, 3, 32, 32), torch.rand(8) * 1000), torch.randn(8, 3, 32, 32)), F.mse_loss, adamw()),
    'vae': (Vae, lambda: (lambda x: (x, x))(torch.rand(128, 784)), vae_loss, adamw(1e-3)),
    'dlrm': (Dlrm, lambda: ((torch.randn(256, 13), torch.randint(10000, (256, 26))), torch.rand(256).round()), F.binary_cross_entropy_with_logits, sgd(0.1)),
    'dqn': (dqn, lambda: (torch.rand(32, 4, 84, 84), (torch.randint(6, (32, 1)), torch.randn(32, 1))),
            lambda q, t: F.smooth_l1_loss(q.gather(1, t[0]), t[1]), adamw(1e-4)),
    'fuse': (Fuse, lambda: (torch.randn(512, 4096).requires_grad_(), None), lambda r, _: r.square().mean(), sgd()),
}


def make_step(name, mode, infer):
    model, batch, loss, optimiser = WORKLOADS[name]
    torch.manual_seed(0)
    net = model().train(not infer)
    x, y = batch()
    opt = optimiser(net.parameters(), fused=True) if mode == 'compile' else optimiser(net.parameters())
    forward = lambda: loss(net(x), y)
    if mode == 'compile':
        forward = torch.compile(forward)

    def step():
        if infer:
            with torch.no_grad():
                return forward()
        opt.zero_grad(set_to_none=True)
        if torch.is_tensor(x):
            x.grad = None
        forward().backward()
        opt.step()

    return step


def main():
    step = make_step(sys.argv[1], sys.argv[2], '--infer' in sys.argv)
    clock = time.process_time if '--cpu' in sys.argv else time.perf_counter
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = clock()
            step()
            times.append((clock() - start) * 1e3)
        print(json.dumps({'ms': times, 'mib': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}), flush=True)


if __name__ == '__main__':
    main()
