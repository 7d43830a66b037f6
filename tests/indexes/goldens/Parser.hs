{-# LANGUAGE GADTs #-}
module Data.Parser (Parser, run) where

import qualified Data.Map as M

-- | A parser of text.
newtype Parser a = Parser { unParser :: String -> Maybe a }

data Token = Word String | Number Int
  deriving (Show)

data Config = Config
  { name :: String
  , size :: Int
  }

type Table = M.Map String Int

class Pretty a where
  pretty :: a -> String
  pretty _ = ""

instance Pretty Token where
  pretty (Word w) = w

-- | Runs a parser.
run :: Parser a -> String -> Maybe a
run (Parser f) "" = Nothing
run (Parser f) s = go s
  where go = f

limit :: Int
limit = 10

(<+>) :: Int -> Int -> Int
a <+> b = a + b
