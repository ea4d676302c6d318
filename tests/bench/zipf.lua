-- 90 GETs and 10 PUTs of 100 bytes in a hundred, over 10,000 keys whose popularity follows Zipf's law (exponent 1):
-- wrk -s zipf.lua URL -- PREFIX-OF-GET PREFIX-OF-PUT. The requests are made beforehand.
local keys, many = 10000, 8192
local requests, at = {}, 0

function init(args)
    local cumulated, sum = {}, 0
    for i = 1, keys do
        sum = sum + 1 / i
        cumulated[i] = sum
    end
    math.randomseed(7)
    local body = string.rep("v", 100)
    for i = 1, many do
        local wanted, low, high = math.random() * sum, 1, keys
        while low < high do
            local middle = math.floor((low + high) / 2)
            if cumulated[middle] < wanted then low = middle + 1 else high = middle end
        end
        if i % 10 == 0 then
            requests[i] = wrk.format("PUT", args[2] .. "zipf" .. low, nil, body)
        else
            requests[i] = wrk.format("GET", args[1] .. "zipf" .. low)
        end
    end
end

function request()
    at = at % many + 1
    return requests[at]
end
