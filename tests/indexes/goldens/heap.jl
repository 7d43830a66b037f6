module Heaps

"A heap."
Base.@kwdef mutable struct Heap{T} <: AbstractHeap{T}
    items::Vector{T} = T[]
    count
    function Heap{T}(n) where {T}
        new(n)
    end
end

abstract type Other end

const LIMIT = 3

Base.push!(h::Heap, x) = push!(h.items, x)

function first(h::Heap{T})::T where {T}
    h.items[1]
end

macro twice(x)
    x
end

end
