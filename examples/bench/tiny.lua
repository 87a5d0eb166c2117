-- Tiny: sizes that make the workloads small enough for specs and censuses.
return {
   mlp = { inputs = 20, width = 12, batch = 4 },
   vae = { inputs = 20, width = 12, batch = 4 },
   dqn = { batch = 2, wide = 12 },
   fuse = { rows = 4 },
   resnet50 = { batch = 2, size = 32, base = 4, classes = 5, blocks = { 1, 1 } },
   gptmini = { tokens = 11, context = 6, width = 8, heads = 2, layers = 1, batch = 2 },
   gpt2 = { tokens = 11, context = 8, width = 8, heads = 2, layers = 1, batch = 2, length = 5 },
   bert = { tokens = 11, context = 8, width = 8, heads = 2, layers = 1, batch = 2, length = 5 },
   vit = { batch = 2, size = 8, width = 8, heads = 2, layers = 1, patch = 4, classes = 5 },
   charlstm = { tokens = 7, size = 5, hidden = 6, steps = 4, batch = 3 },
   unet = { batch = 2, size = 8, planes = 8, times = 16 },
   dlrm = { tables = 3, rows = 6, batch = 4, d = 4, wide = 8, middle = 6 },
}
