defmodule Shop.Cart do
  @moduledoc "Carts of customers."
  use GenServer
  alias Shop.Item
  @limit 10

  defstruct [:id, items: []]

  @type t :: %__MODULE__{id: integer}
  @callback price(item :: term) :: integer

  @doc "Adds an item."
  def add(cart, item) when is_map(item) do
    helper(cart)
  end

  def add(cart, nil), do: cart

  defp helper(cart), do: cart

  defmacro with_cart(do: block) do
    block
  end

  defguard is_small(n) when n < 10
  defdelegate total(cart), to: Item

  defmodule Error do
    defexception [:message]
  end
end

defprotocol Priced do
  def price(item)
end

defimpl Priced, for: Shop.Item do
  def price(item), do: item.price
end

defmodule Shop.CartTest do
  describe "add/2" do
    test "adds" do
      assert true
    end
  end
end
