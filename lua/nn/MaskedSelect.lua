-- MaskedSelect: the elements of a tensor where a Byte mask is 1 ({tensor, mask} -> vector).

local MaskedSelect = torch.class('nn.MaskedSelect', 'nn.Module')

function MaskedSelect:__init()
   nn.Module.__init(self)
   self.gradInput = {}
end

function MaskedSelect:compute(input)
   return input[1]:maskedSelect(input[2])
end
