-- ConfusionMatrix: counts of (target, prediction) pairs of a classifier (scores, labels -> accuracies).

local ConfusionMatrix = torch.class('optim.ConfusionMatrix')

--- nclasses: a number, or the list of class names as the first or second argument.
function ConfusionMatrix:__init(nclasses, classes)
   if type(nclasses) == 'table' then
      classes = nclasses
      nclasses = #classes
   end
   self.mat = torch.LongTensor(nclasses, nclasses):zero()
   self.valids = torch.FloatTensor(nclasses):zero()
   self.unionvalids = torch.FloatTensor(nclasses):zero()
   self.nclasses = nclasses
   self.totalValid = 0
   self.averageValid = 0
   self.averageUnionValid = 0
   if classes == nil then
      classes = {}
      for i = 1, nclasses do classes[i] = 'class ' .. i end
   end
   self.classes = classes
end

--- Adds one pair of class numbers; a target that is not positive counts as missing.
function ConfusionMatrix:_add(p, t)
   assert(p and type(p) == 'number')
   assert(t and type(t) == 'number')
   if t > 0 then self.mat[t][p] = self.mat[t][p] + 1 end
end

local function largest(scores)
   local _, i = scores:max(1)
   return i:view(-1)[1]
end

--- One sample: scores (a tensor) or a class number, and the target likewise.
function ConfusionMatrix:add(prediction, target)
   if type(prediction) ~= 'number' then prediction = largest(prediction:view(-1)) end
   if type(target) ~= 'number' then
      target = target:nElement() == 1 and target:view(-1)[1] or largest(target:view(-1))
   end
   self:_add(prediction, target)
end

--- A batch: predictions are scores (batch, classes) or class numbers (batch); targets class numbers (batch) or scores.
function ConfusionMatrix:batchAdd(predictions, targets)
   local function classes(x)
      if x:dim() == 1 then return x end
      if x:dim() == 2 then
         if x:size(2) == 1 then return x:select(2, 1) end
         local _, i = x:max(2)
         return i:select(2, 1)
      end
      error('[ConfusionMatrix.batchAdd] predictions or targets; got ' .. x:dim() .. ' dimensions, need 1 or 2')
   end
   local p, t = classes(predictions):totable(), classes(targets):totable()
   assert(#p == #t, 'predictions and targets differ in number')
   for i = 1, #p do self:_add(p[i], t[i]) end
end

--- Forgets everything.
function ConfusionMatrix:zero()
   self.mat:zero()
   self.valids:zero()
   self.unionvalids:zero()
   self.totalValid = 0
   self.averageValid = 0
end

--- Recomputes valids (recall per class), unionvalids (intersection over union), totalValid and the averages, all in 0..1.
function ConfusionMatrix:updateValids()
   local n = self.nclasses
   local rows, columns, diagonal = {}, {}, {}
   local mat = self.mat:totable()
   for i = 1, n do rows[i], columns[i] = 0, 0 end
   local total, correct = 0, 0
   for i = 1, n do
      for j = 1, n do
         rows[i], columns[j] = rows[i] + mat[i][j], columns[j] + mat[i][j]
         total = total + mat[i][j]
      end
      diagonal[i] = mat[i][i]
      correct = correct + mat[i][i]
   end
   local sum, seen, sumUnion, seenUnion = 0, 0, 0, 0
   for i = 1, n do
      local v = diagonal[i] / rows[i]
      local u = diagonal[i] / (rows[i] + columns[i] - diagonal[i])
      self.valids[i] = v
      self.unionvalids[i] = u
      if v == v then sum, seen = sum + v, seen + 1 end
      if rows[i] > 0 and u == u then sumUnion, seenUnion = sumUnion + u, seenUnion + 1 end
   end
   self.totalValid = correct / total
   self.averageValid = sum / seen
   self.averageUnionValid = sumUnion / seenUnion
end

--- False acceptance rate, false rejection rate, and their mean, from the matrix of two or more classes (per class).
function ConfusionMatrix:farFrr()
   local cmat = self.mat
   local n = self.nclasses
   local fars, frrs, far, frr = {}, {}, 0, 0
   for i = 1, n do
      local tp, fn, fp, rest = cmat[i][i], 0, 0, 0
      for j = 1, n do
         if j ~= i then
            fn, fp = fn + cmat[i][j], fp + cmat[j][i]
            for k = 1, n do
               if k ~= i then rest = rest + cmat[j][k] end
            end
         end
      end
      frrs[i], fars[i] = fn / (tp + fn), fp / (fp + rest)
      far, frr = far + fars[i] / n, frr + frrs[i] / n
   end
   return torch.FloatTensor(fars), torch.FloatTensor(frrs), far, frr
end

-- Classes in falling order of a list of numbers.
local function falling(list)
   local order = {}
   for i = 1, #list do order[i] = i end
   table.sort(order, function(a, b)
      if list[a] ~= list[b] then return list[a] > list[b] end
      return a < b
   end)
   return order
end

--- The matrix as a picture: a (n block, n block) tensor of each row's shares, 0 to 1, with lines of 0.1 between cells. sortmode: 'score'
-- (default, by accuracy) or 'occurrence'; display: shown with image.display where the package image is there; block (25): pixels a cell.
-- Also returns the order of the classes. (The original's legend needs Qt; names and accuracies are in tostring.)
function ConfusionMatrix:render(sortmode, display, block)
   sortmode, block = sortmode or 'score', block or 25
   if sortmode ~= 'score' and sortmode ~= 'occurrence' then error('sort mode must be one of: score | occurrence', 2) end
   local n, shares, key = self.nclasses, {}, {}
   for t = 1, n do
      local total = self.mat[t]:sum()
      shares[t] = self.mat[t]:double() / math.max(total, 1)
      key[t] = sortmode == 'score' and shares[t][t] or total
   end
   local order, picture = falling(key), torch.zeros(n * block, n * block)
   for t = 1, n do
      for p = 1, n do
         picture:narrow(1, (t - 1) * block + 1, block):narrow(2, (p - 1) * block + 1, block):fill(shares[order[t]][order[p]])
      end
   end
   for t = 1, n do
      picture:select(1, t * block):fill(0.1)
      picture:select(2, t * block):fill(0.1)
   end
   if display then require('image').display {image = picture, legend = 'Confusion matrix [sorted by ' .. sortmode .. ']'} end
   return picture, order
end

-- Width of one cell, and the row labels' format.
local function cellWidth(self)
   local width = 8
   for i = 1, self.nclasses do
      for j = 1, self.nclasses do width = math.max(width, #tostring(self.mat[i][j]) + 2) end
   end
   return width
end

function ConfusionMatrix:__tostring__()
   self:updateValids()
   local lines = {'ConfusionMatrix:'}
   local n = self.nclasses
   if n < 20 then
      local width = cellWidth(self)
      local cell = '%' .. width .. 'd'
      for t = 1, n do
         local row = {t == 1 and '[[' or ' ['}
         for p = 1, n do row[#row + 1] = cell:format(self.mat[t][p]) end
         row[#row + 1] = t == n and ']]  ' or ']   '
         row[#row + 1] = ('%.3f%%'):format(self.valids[t] * 100)
         row[#row + 1] = self.classes and self.classes[1] and ' \t[class: ' .. tostring(self.classes[t]) .. ']' or ''
         lines[#lines + 1] = table.concat(row)
      end
   else
      for t = 1, n do
         lines[#lines + 1] = (self.classes and self.classes[1] and tostring(self.classes[t]) .. '\t' or '')
            .. ('%.3f%%'):format(self.valids[t] * 100)
      end
   end
   lines[#lines + 1] = ' + average row correct: ' .. self.averageValid * 100 .. '% '
   lines[#lines + 1] = ' + average rowUcol correct (VOC measure): ' .. self.averageUnionValid * 100 .. '% '
   lines[#lines + 1] = ' + global correct: ' .. self.totalValid * 100 .. '%'
   return table.concat(lines, '\n')
end
