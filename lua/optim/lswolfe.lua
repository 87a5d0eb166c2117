-- Line search for the strong Wolfe conditions: bracketing, then zoom, with cubic steps (Nocedal and Wright, algorithms 3.5 and 3.6).

local function wellDefined(f, gtd)
   return f == f and gtd == gtd and math.abs(f) < math.huge and math.abs(gtd) < math.huge
end

--- Searches along direction d from x (f, g and gtd = g.d there), first step t.
-- options: c1 (1e-4), c2 (0.9), tolX (1e-9), maxIter (20), verbose. Returns f, gradient and x at the point found, the step, and the
-- number of evaluations. x itself is left where it was.
return function(opfunc, x, t, d, f, g, gtd, options)
   options = options or {}
   local c1, c2 = options.c1 or 1e-4, options.c2 or 0.9
   local tolX, maxIter = options.tolX or 1e-9, options.maxIter or 20
   local isverbose = options.verbose or false
   local xt = x.new():resizeAs(x)
   local evals = 0

   -- The point at step s: {t, f, g, gtd}.
   local function at(s)
      xt:copy(x):add(s, d)
      local fs, gs = opfunc(xt)
      evals = evals + 1
      gs = gs:clone()
      return {t = s, f = fs, g = gs, gtd = gs * d}
   end

   local start = {t = 0, f = f, g = g:clone(), gtd = gtd}
   local function armijoFails(p) return p.f > f + c1 * p.t * gtd end
   local function curvatureHolds(p) return math.abs(p.gtd) <= -c2 * gtd end
   local function cubic(a, b, lo, hi)
      return optim.polyinterp(torch.DoubleTensor {{a.t, a.f, a.gtd}, {b.t, b.f, b.gtd}}, lo, hi)
   end

   -- Bracket.
   local previous, current = start, at(t)
   local lo, hi, found
   for iter = 1, maxIter do
      if not wellDefined(current.f, current.gtd) then
         lo, hi = previous, current
         t = (previous.t + current.t) / 2
         if isverbose then print('<lswolfe> illegal value, bisecting') end
         for _ = 1, maxIter do
            current = at(t)
            if wellDefined(current.f, current.gtd) then break end
            t = (previous.t + t) / 2
         end
         if not wellDefined(current.f, current.gtd) then
            found = start
            break
         end
      end
      if armijoFails(current) or iter > 1 and current.f >= previous.f then
         lo, hi = previous, current
         break
      elseif curvatureHolds(current) then
         found = current
         break
      elseif current.gtd >= 0 then
         lo, hi = current, previous
         break
      end
      local smallest = current.t + 0.01 * (current.t - previous.t)
      local step = cubic(previous, current, smallest, current.t * 10)
      previous, current = current, at(step)
      lo, hi = previous, current
   end
   if found then
      xt:copy(x):add(found.t, d)
      return found.f, found.g, xt, found.t, evals
   end

   -- Zoom: lo is the best point so far, the minimum lies between lo and hi.
   if hi.f < lo.f and not armijoFails(hi) then lo, hi = hi, lo end
   local stuck = false
   while evals < maxIter do
      local left, right = math.min(lo.t, hi.t), math.max(lo.t, hi.t)
      local step
      if wellDefined(hi.f, hi.gtd) then
         step = cubic(lo, hi)
      else
         step = (left + right) / 2
      end
      local width = right - left
      local margin = math.min(right - step, step - left)
      if margin < 0.1 * width then
         if stuck or step >= right or step <= left then
            step = math.abs(step - right) < math.abs(step - left) and right - 0.1 * width or left + 0.1 * width
            stuck = false
         else
            stuck = true
         end
      else
         stuck = false
      end
      local p = at(step)
      if armijoFails(p) or p.f >= lo.f or p.f ~= p.f then
         hi = p
      else
         if curvatureHolds(p) then
            lo = p
            break
         elseif p.gtd * (hi.t - lo.t) >= 0 then
            hi = lo
         end
         lo = p
      end
      if math.abs((hi.t - lo.t) * gtd) < tolX then break end
   end
   xt:copy(x):add(lo.t, d)
   return lo.f, lo.g, xt, lo.t, evals
end
