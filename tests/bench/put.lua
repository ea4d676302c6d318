-- PUT of SIZE bytes: wrk -s put.lua URL -- SIZE
function init(args)
    wrk.method = "PUT"
    wrk.body = string.rep("v", tonumber(args[1]))
end
