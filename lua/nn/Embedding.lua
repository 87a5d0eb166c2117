-- Embedding: another name for LookupTable.

torch.class('nn.Embedding', 'nn.LookupTable')
