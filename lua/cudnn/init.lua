-- cudnn: Torch7's names for layers that cuDNN computes; they are nn's own modules here.
require 'cutorch'
local nn = require 'nn'
local cudnn = setmetatable({benchmark = false, fastest = false, verbose = false}, {__index = nn})

--- The module itself: modules choose their kernels by the device of their input.
function cudnn.convert(net) return net end
rawset(_G, 'cudnn', cudnn)
return cudnn
