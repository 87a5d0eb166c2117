-- ZipTableOneToMany: {a, {b1, b2}} -> {{a, b1}, {a, b2}}.

local ZipTableOneToMany = torch.class('nn.ZipTableOneToMany', 'nn.Module')

function ZipTableOneToMany:__init()
   nn.Module.__init(self)
   self.output = {}
   self.gradInput = {}
end

function ZipTableOneToMany:updateOutput(input)
   assert(#input == 2, 'input must be table of element and table')
   self.output = {}
   for i, v in ipairs(input[2]) do self.output[i] = {input[1], v} end
   return self.output
end

function ZipTableOneToMany:updateGradInput(input, gradOutput)
   local d, list = input[1].new():resizeAs(input[1]):zero(), {}
   for i = 1, #gradOutput do
      d:add(gradOutput[i][1])
      list[i] = gradOutput[i][2]
   end
   self.gradInput = {d, list}
   return self.gradInput
end
