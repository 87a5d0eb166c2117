-- cunn: nn on CUDA tensors. Modules are written over the op table, so nothing has to be added.
require 'cutorch'
return require 'nn'
