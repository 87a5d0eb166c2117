-- ZipTable: {{a1, a2}, {b1, b2}} -> {{a1, b1}, {a2, b2}}.

local ZipTable = torch.class('nn.ZipTable', 'nn.Module')

function ZipTable:__init()
   nn.Module.__init(self)
   self.output = {}
   self.gradInput = {}
end

local function transpose(x)
   local r = {}
   for i = 1, #x do
      for k = 1, #x[i] do
         r[k] = r[k] or {}
         r[k][i] = x[i][k]
      end
   end
   return r
end

function ZipTable:updateOutput(input)
   self.output = transpose(input)
   return self.output
end

function ZipTable:updateGradInput(_, gradOutput)
   self.gradInput = transpose(gradOutput)
   return self.gradInput
end
