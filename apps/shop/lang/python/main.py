# SPDX-License-Identifier: Apache-2.0
"""services/recommender.cc in Python: products that suit others, by the model that `shop train` has written."""

import os

import accounts_pb2
import google.protobuf.message
import goods_pb2
import goods_pb2_grpc
import grpc
import host
import numpy
import taste_model_pb2

MOST_LINES = 100


class Model:
    """A model of taste (apps/kit/taste/taste.h), read again once its file has changed."""

    def __init__(self, path):
        self.path, self.stamp, self.parts = path, None, None

    def get(self):
        """The items, their biases with the mean, their appeals, and the highest score."""
        try:
            stat = os.stat(self.path)
            stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            if stamp != self.stamp:
                with open(self.path, "rb") as file:
                    self.parts = parts_of(taste_model_pb2.TasteModel.FromString(file.read()))
                self.stamp = stamp
        except FileNotFoundError:
            raise host.Refused(grpc.StatusCode.FAILED_PRECONDITION, "nothing was learned yet: run shop train") from None
        except (google.protobuf.message.DecodeError, ValueError):
            raise host.Refused(grpc.StatusCode.DATA_LOSS, "the parts of the model do not fit each other: train again") from None
        return self.parts


def parts_of(model):
    items = numpy.array(model.items, numpy.uint64)
    appeal = numpy.array(model.appeal, numpy.float32).reshape(len(items), model.rank)
    scores = numpy.clip(model.mean + numpy.array(model.item_bias, numpy.float64), 0, model.most)
    if len(scores) != len(items) or model.most <= 0 or numpy.any(items[:-1] > items[1:]):
        raise ValueError
    return items, scores, appeal


def best(items, scores, count):
    """The items of the best scores; of equal ones the lower ids first."""
    return [int(item) for item in items[numpy.lexsort((items, -scores))[:count]]]


def dots(rows, other):
    """The products of rows with a row, as C++ has them: of floats, summed as doubles from first to last. numpy.sum takes another order."""
    return numpy.cumsum((rows * other).astype(numpy.float64), axis=1)[:, -1]


def similar(items, appeal, given, count):
    found = ((item, int(numpy.searchsorted(items, item))) for item in given)
    places = [place for item, place in found if place < len(items) and items[place] == item]
    if not places:
        return []
    sums, squares = numpy.zeros(len(items)), dots(appeal, appeal)
    for place in places:
        lengths = numpy.sqrt(squares[place] * squares)
        with numpy.errstate(divide="ignore", invalid="ignore"):
            sums += numpy.where(lengths > 0, dots(appeal, appeal[place]) / lengths, -1)
    return [item for item in best(items, sums, count + len(given)) if item not in given][:count]


class Recommender(goods_pb2_grpc.RecommenderServicer):
    def __init__(self, surroundings):
        self.model = Model(os.path.join(surroundings.data_folder(), "products.model"))
        self.catalogue = surroundings.peer("catalogue", goods_pb2_grpc.CatalogueStub)

    def For(self, request, context):
        """Of a basket without a product that the model has, these are the products that most customers buy."""
        return self.recommend(request, or_popular=True)

    def Similar(self, request, context):
        return self.recommend(request, or_popular=False)

    def recommend(self, request, or_popular):
        given, limit = list(request.products), min(request.limit, 100) or 20
        if len(given) > MOST_LINES:
            raise host.Refused(grpc.StatusCode.INVALID_ARGUMENT, f"{len(given)} products; at most {MOST_LINES} are taken at once")
        items, scores, appeal = self.model.get()
        found = similar(items, appeal, given, limit)
        if not found and or_popular:
            found = [item for item in best(items, scores, len(given) + limit) if item not in given][:limit]
        return self.catalogue.Get(accounts_pb2.Ids(ids=found)) if found else goods_pb2.ProductList()


def make(surroundings):
    goods_pb2_grpc.add_RecommenderServicer_to_server(Recommender(surroundings), surroundings.server)


host.main("shop", {"recommender": make})
