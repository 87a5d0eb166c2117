-- CReLU (Shang et al., 2016): ReLU of x and of -x, joined along planes.

local op = require('relume.core').op
local CReLU = torch.class('nn.CReLU', 'nn.Module')

--- nInputDims: the dimensions of one sample; planes are its first. inplace is accepted, memory is planned by the compiler.
function CReLU:__init(nInputDims, inplace)
   nn.Module.__init(self)
   self.nInputDims = nInputDims
   self.inplace = inplace or false
end

function CReLU:compute(input)
   return op.relu(op.cat({input, -input}, input:dim() - self.nInputDims))
end
