/*
 * Posts and polls with nothing but the generated header and descriptions, as a kernel on a GPU would.
 *
 * Standard input: a description, its ring and the work. Standard output: doorbells and the ring, or completions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"

struct request {
	uint64_t local_va, remote_va;
	uint32_t lkey, rkey, length, signaled;
};

static void in(void *to, size_t bytes)
{
	if (fread(to, 1, bytes, stdin) != bytes)
		exit(2);
}

static void out(const void *from, size_t bytes)
{
	if (fwrite(from, 1, bytes, stdout) != bytes)
		exit(2);
}

static void *ring(uint32_t bytes)
{
	void *memory = malloc(bytes);

	if (!memory)
		exit(2);
	in(memory, bytes);
	return memory;
}

static void check(uint32_t version, uint32_t bytes, size_t known)
{
	if (version != DV_DESCRIPTION_VERSION || bytes < known)
		exit(3);
}

/* One RDMA WRITE of one SGE. Returns the doorbell. */
static uint64_t bnxt_re_write(struct dv_bnxt_re_qp_description *qp, const struct request *wr)
{
	uint8_t *sq = (uint8_t *)(uintptr_t)qp->sq_ring;
	uint8_t *table = sq + qp->sq_table_offset;
	uint32_t slots = qp->sq_wqe_mode ? 3 : 8;
	uint32_t index = qp->sq_wqe_mode ? qp->sq_slot : qp->sq_wqe;
	uint32_t packets = wr->length ? (wr->length + qp->mtu - 1) / qp->mtu : 1;
	uint32_t next_psn = (qp->sq_psn + packets) & 0xffffff;
	struct dv_bnxt_re_sq_rdma_hdr old, header = {
		.wqe_type = 4,
		.flags = wr->signaled ? DV_BNXT_RE_SQ_RDMA_HDR_FLAGS_SIGNAL_COMP_MASK : 0,
		.wqe_size = 3,
		.length = wr->length,
		.remote_va = wr->remote_va,
		.remote_key = wr->rkey,
	};
	struct dv_bnxt_re_sq_sge sge = { .va_or_pa = wr->local_va, .l_key = wr->lkey, .size = wr->length };
	uint8_t wqe[3 * 16];

	/* Fields that the operation does not use keep what was there, as with the vendor's provider. */
	memcpy(&old, sq + qp->sq_slot * 16, 16);
	memcpy((uint8_t *)&old + 16, sq + (qp->sq_slot + 1) % qp->sq_slots * 16, 16);
	header.imm_data = old.imm_data;
	header.timestamp = old.timestamp;
	memcpy(wqe, &header, sizeof(header));
	memcpy(wqe + sizeof(header), &sge, sizeof(sge));
	for (uint32_t i = 0; i < 3; i++)
		memcpy(sq + (qp->sq_slot + i) % qp->sq_slots * 16, wqe + 16 * i, 16);

	if (qp->sq_table == 2) {
		struct dv_bnxt_re_sq_msn_search entry = {
			(uint64_t)index << 48 | (uint64_t)next_psn << 24 | qp->sq_psn,
		};
		memcpy(table + qp->sq_msn * qp->sq_table_entry_bytes, &entry, sizeof(entry));
		qp->sq_msn = (qp->sq_msn + 1) % qp->sq_msn_modulus;
	} else {
		struct dv_bnxt_re_sq_psn_search_ext entry = {
			.opcode_start_psn = qp->sq_psn,
			.flags_next_psn = next_psn,
			.start_slot_idx = index,
		};
		memcpy(table + index * qp->sq_table_entry_bytes, &entry, sizeof(entry));
	}

	qp->sq_psn = next_psn;
	qp->sq_slot += slots;
	if (qp->sq_slot >= qp->sq_slots) {
		qp->sq_slot -= qp->sq_slots;
		qp->sq_epoch ^= 1;
	}
	qp->sq_wqe = (qp->sq_wqe + 1) % qp->sq_wqe_modulus;
	return qp->sq_doorbell_base | qp->sq_epoch << 24 | (qp->sq_wqe_mode ? qp->sq_slot : qp->sq_wqe);
}

static void bnxt_re_post(void)
{
	struct dv_bnxt_re_qp_description qp;
	struct request wr;
	uint32_t count, bytes;

	in(&qp, sizeof(qp));
	check(qp.version, qp.bytes, sizeof(qp));
	in(&bytes, sizeof(bytes));
	qp.sq_ring = (uintptr_t)ring(bytes);
	in(&count, sizeof(count));
	while (count--) {
		in(&wr, sizeof(wr));
		uint64_t doorbell = bnxt_re_write(&qp, &wr);
		out(&doorbell, sizeof(doorbell));
	}
	out((void *)(uintptr_t)qp.sq_ring, bytes);
}

/* Prints handle and index of each requester completion, and the doorbell. */
static void bnxt_re_poll(void)
{
	struct dv_bnxt_re_cq_description cq;
	struct dv_bnxt_re_cq_req *cqes, *cqe;

	in(&cq, sizeof(cq));
	check(cq.version, cq.bytes, sizeof(cq));
	cqes = ring(cq.entries * cq.entry_bytes);
	while (cqe = &cqes[cq.index], (cqe->cqe_type_toggle & 1) == cq.phase) {
		uint64_t done[2] = { cqe->qp_handle, cqe->sq_cons_idx };

		out(done, sizeof(done));
		if (++cq.index == cq.entries) {
			cq.index = 0;
			cq.phase ^= 1;
			cq.epoch ^= 1;
		}
	}
	uint64_t doorbell = cq.doorbell_base | cq.epoch << 24 | cq.index;
	out(&doorbell, sizeof(doorbell));
}

/* One RDMA WRITE of one SGE. Returns the doorbell. */
static uint64_t ionic_write(struct dv_ionic_qp_description *qp, const struct request *wr)
{
	uint32_t mask = (1u << qp->sq_depth_log2) - 1;
	uint32_t flags = wr->signaled ? DV_IONIC_RDMA_WQE_FLAGS_SIGNALED_MASK : 0;
	uint8_t *at = (uint8_t *)(uintptr_t)qp->sq_ring + ((uint64_t)qp->sq_index << qp->sq_stride_log2);
	struct dv_ionic_rdma_wqe wqe = {
		.wqe_idx = qp->sq_index,
		.op = qp->rdma_version == 2 ? 0x21 : 4,
		.num_sge = 1,
		.remote_va_high = __builtin_bswap32(wr->remote_va >> 32),
		.remote_va_low = __builtin_bswap32((uint32_t)wr->remote_va),
		.remote_rkey = __builtin_bswap32(wr->rkey),
		.length = __builtin_bswap32(wr->length),
	};
	struct dv_ionic_sge sge = {
		.va = __builtin_bswap64(wr->local_va),
		.len = __builtin_bswap32(wr->length),
		.lkey = __builtin_bswap32(wr->lkey),
	};

	if (qp->sq_color)
		flags |= DV_IONIC_RDMA_WQE_FLAGS_COLOR_MASK;
	wqe.flags = __builtin_bswap16(flags);
	memcpy(wqe.payload, &sge, sizeof(sge));
	memset(at, 0, (size_t)1 << qp->sq_stride_log2);
	memcpy(at, &wqe, sizeof(wqe));

	qp->sq_index = (qp->sq_index + 1) & mask;
	if (qp->sq_placement & DV_IONIC_QP_DESCRIPTION_SQ_PLACEMENT_EXPRESS_MASK) {
		uint64_t express = qp->sq_express_base | qp->sq_index;

		memcpy(at + ((size_t)1 << qp->sq_stride_log2) - 8, &express, 8);
	}
	qp->sq_color ^= qp->sq_index == 0;
	qp->sq_msn = (qp->sq_msn + 1) & 0xffffff;
	return qp->sq_doorbell_base | qp->sq_index;
}

static void ionic_post(void)
{
	struct dv_ionic_qp_description qp;
	struct request wr;
	uint32_t count, bytes;

	in(&qp, sizeof(qp));
	check(qp.version, qp.bytes, sizeof(qp));
	in(&bytes, sizeof(bytes));
	qp.sq_ring = (uintptr_t)ring(bytes);
	in(&count, sizeof(count));
	while (count--) {
		in(&wr, sizeof(wr));
		uint64_t doorbell = ionic_write(&qp, &wr);
		out(&doorbell, sizeof(doorbell));
	}
	out((void *)(uintptr_t)qp.sq_ring, bytes);
}

/* Prints queue pair and message number of each send completion, and the doorbell. */
static void ionic_poll(void)
{
	struct dv_ionic_cq_description cq;
	struct dv_ionic_send_cqe *cqes;
	uint32_t word;

	in(&cq, sizeof(cq));
	check(cq.version, cq.bytes, sizeof(cq));
	cqes = ring(1u << (cq.depth_log2 + cq.stride_log2));
	while (word = __builtin_bswap32(cqes[cq.index].qid_type_flags), (word & 1) == cq.color) {
		uint64_t done[2] = { word >> 8, __builtin_bswap32(cqes[cq.index].msg_msn) };

		out(done, sizeof(done));
		cq.index = (cq.index + 1) & ((1u << cq.depth_log2) - 1);
		cq.color ^= cq.index == 0;
	}
	uint64_t doorbell = cq.doorbell_base | cq.index;
	out(&doorbell, sizeof(doorbell));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} work[] = {
		{ "bnxt_re-post", bnxt_re_post },
		{ "bnxt_re-poll", bnxt_re_poll },
		{ "ionic-post", ionic_post },
		{ "ionic-poll", ionic_poll },
	};

	for (size_t i = 0; argc == 2 && i < sizeof(work) / sizeof(work[0]); i++) {
		if (strcmp(argv[1], work[i].name) == 0) {
			work[i].run();
			return 0;
		}
	}
	return 1;
}
