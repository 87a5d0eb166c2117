std = 'luajit'
max_line_length = 160
codes = true
exclude_files = { 'build*', '.rocks' }
-- Arguments keep the names of the interface they serve; method definitions need not use self.
unused_args = false
self = false
globals = { 'torch' }
read_globals = { 'nn', 'optim', 'paths', 'sys', 'xlua', 'nngraph', 'graph' }
files['spec'] = { std = '+busted', globals = { 'assert' }, max_line_length = 200 }
files['lib/gen'] = { max_line_length = 200 } -- lines of generated C
files['lib/ops.def'] = { std = 'none' }
-- Loading these modules defines globals with Torch7's names, as it always did.
files['lua'] = { globals = { 'dok', 'csvigo', 'hdf5', 'torch', 'nn', 'optim', 'paths', 'sys', 'xlua', 'nngraph', 'graph', 'include', 'importns' } }
-- Torch7 adds to the standard tables.
files['lua/torch'] = { ignore = { '142' } }
