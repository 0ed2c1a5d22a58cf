// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"curtail/host"
	appspb "curtail/pb/curtail/apps"
	pb "curtail/pb/curtail/shop"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// payment is services/payment.cc in Go: what orders are charged, from the same file.
type payment struct {
	pb.UnimplementedPaymentServer
	store *host.Store
	auth  pb.PaymentAuthClient
	ids   pb.TransactionIdClient
}

// keptCharge is a row; order 0: there is none.
type keptCharge struct {
	charge *pb.Charge
	why    string // if it is DECLINED
}

func newPayment(h *host.Host) error {
	store, err := h.Open()
	if err != nil {
		return err
	}
	pb.RegisterPaymentServer(h.Server, &payment{store: store, auth: pb.NewPaymentAuthClient(h.Peer("payment-auth")),
		ids: pb.NewTransactionIdClient(h.Peer("transaction-id"))})
	return nil
}

func (p *payment) Authorise(ctx context.Context, request *pb.Charges) (*pb.Outcomes, error) {
	if err := checkCount(len(request.Charges), mostOrders, "charges"); err != nil {
		return nil, err
	}
	fresh := &pb.Charges{}
	err := p.store.Read(ctx, func(tx *sql.Tx) error {
		for _, charge := range request.Charges {
			kept, err := readCharge(tx, charge.Order)
			if err != nil {
				return err
			}
			if kept.charge.Order == 0 {
				fresh.Charges = append(fresh.Charges, charge)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	decided, err := p.askBank(ctx, fresh)
	if err != nil {
		return nil, err
	}
	reply := &pb.Outcomes{}
	return reply, p.store.Write(ctx, func(tx *sql.Tx) error {
		for _, kept := range decided {
			if err := insertCharge(tx, kept); err != nil {
				return err
			}
		}
		for _, charge := range request.Charges {
			kept, err := readCharge(tx, charge.Order)
			if err != nil {
				return err
			}
			s := status.Convert(outcomeOf(charge, kept))
			reply.Outcomes = append(reply.Outcomes, &pb.Outcome{Order: charge.Order, Code: int32(s.Code()), Why: s.Message()})
		}
		return nil
	})
}

// askBank asks the bank of the cards, and for numbers, at once.
func (p *payment) askBank(ctx context.Context, charges *pb.Charges) (map[uint64]keptCharge, error) {
	if len(charges.Charges) == 0 {
		return nil, nil
	}
	names := &pb.TransactionName{}
	for _, charge := range charges.Charges {
		names.Names = append(names.Names, fmt.Sprintf("order %d", charge.Order))
	}
	var numbers *pb.TransactionNumbers
	failed := make(chan error)
	go func() {
		var err error
		numbers, err = p.ids.Next(ctx, names)
		failed <- err
	}()
	outcomes, err := p.auth.Decide(ctx, charges)
	if other := <-failed; err == nil {
		err = other
	}
	if err != nil {
		return nil, err
	}
	if len(outcomes.Outcomes) != len(charges.Charges) || len(numbers.Numbers) != len(charges.Charges) {
		return nil, status.Error(codes.Internal, "not every charge has an answer")
	}
	decided := map[uint64]keptCharge{}
	for i, charge := range charges.Charges {
		state := pb.Charge_AUTHORISED
		if outcomes.Outcomes[i].Code != 0 {
			state = pb.Charge_DECLINED
		}
		decided[charge.Order] = keptCharge{&pb.Charge{Order: charge.Order, Owner: charge.Owner, Cents: charge.Cents,
			CardToken: charge.CardToken, State: state, Transaction: numbers.Numbers[i]}, outcomes.Outcomes[i].Why}
	}
	return decided, nil
}

func outcomeOf(asked *pb.Charge, kept keptCharge) error {
	charge := kept.charge
	switch {
	case charge.State == pb.Charge_VOIDED:
		return status.Error(codes.FailedPrecondition, "the payment was taken back")
	case charge.Owner != asked.Owner || charge.Cents != asked.Cents || charge.CardToken != asked.CardToken:
		return status.Error(codes.AlreadyExists, "the order was charged to another card, or with other cents")
	case charge.State == pb.Charge_DECLINED:
		return status.Error(codes.FailedPrecondition, kept.why)
	}
	return nil
}

func (p *payment) Capture(ctx context.Context, orders *appspb.Ids) (*appspb.Nothing, error) {
	return p.move(ctx, orders, pb.Charge_CAPTURED)
}

func (p *payment) Refund(ctx context.Context, orders *appspb.Ids) (*appspb.Nothing, error) {
	return p.move(ctx, orders, pb.Charge_REFUNDED)
}

func (p *payment) Void(ctx context.Context, orders *appspb.Ids) (*appspb.Nothing, error) {
	return p.move(ctx, orders, pb.Charge_VOIDED)
}

func (p *payment) move(ctx context.Context, orders *appspb.Ids, to pb.Charge_State) (*appspb.Nothing, error) {
	return &appspb.Nothing{}, p.store.Write(ctx, func(tx *sql.Tx) error {
		err := checkCount(len(orders.Ids), mostOrders, "orders")
		for i := 0; err == nil && i < len(orders.Ids); i++ {
			err = moveOne(tx, orders.Ids[i], to)
		}
		return err
	})
}

func moveOne(tx *sql.Tx, order uint64, to pb.Charge_State) error {
	kept, err := readCharge(tx, order)
	from := kept.charge.GetState()
	if err != nil || from == to || to == pb.Charge_VOIDED && from == pb.Charge_DECLINED ||
		to == pb.Charge_CAPTURED && from == pb.Charge_REFUNDED {
		return err
	}
	if from == pb.Charge_NONE && to == pb.Charge_VOIDED {
		return insertCharge(tx, keptCharge{charge: &pb.Charge{Order: order, State: to}})
	}
	before := pb.Charge_AUTHORISED
	if to == pb.Charge_REFUNDED {
		before = pb.Charge_CAPTURED
	}
	if from != before {
		return status.Errorf(codes.FailedPrecondition, "the payment of order %d is %v", order, from)
	}
	_, err = tx.Exec("UPDATE charges SET state = ?2 WHERE order_id = ?1", int64(order), int(to))
	return err
}

func (p *payment) Get(ctx context.Context, orders *appspb.Ids) (*pb.Charges, error) {
	if err := checkCount(len(orders.Ids), mostIds, "orders"); err != nil {
		return nil, err
	}
	reply := &pb.Charges{}
	return reply, p.store.Read(ctx, func(tx *sql.Tx) error {
		for _, order := range orders.Ids {
			kept, err := readCharge(tx, order)
			if err != nil {
				return err
			}
			kept.charge.Order = order
			reply.Charges = append(reply.Charges, kept.charge)
		}
		return nil
	})
}

func readCharge(tx *sql.Tx, order uint64) (keptCharge, error) {
	var owner, number int64
	kept := keptCharge{charge: &pb.Charge{}}
	err := tx.QueryRow("SELECT owner, cents, card, state, number, why FROM charges WHERE order_id = ?1", int64(order)).
		Scan(&owner, &kept.charge.Cents, &kept.charge.CardToken, &kept.charge.State, &number, &kept.why)
	if errors.Is(err, sql.ErrNoRows) {
		return kept, nil
	}
	kept.charge.Order, kept.charge.Owner, kept.charge.Transaction = order, uint64(owner), uint64(number)
	return kept, err
}

// insertCharge leaves a charge that is there.
func insertCharge(tx *sql.Tx, kept keptCharge) error {
	c := kept.charge
	_, err := tx.Exec("INSERT INTO charges(order_id, owner, cents, card, state, number, why)"+
		" VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT(order_id) DO NOTHING",
		int64(c.Order), int64(c.Owner), c.Cents, c.CardToken, int(c.State), int64(c.Transaction), kept.why)
	return err
}
