// The AWS SDK for Go with its default settings, against the system under test: `make s3-sdks`.
//
// ENDPOINT BUCKET are the arguments, the keys are in the environment. Exits with an error where something is not as it should be.
// Defaults matter: the SDK sends CRC32 in trailers, the upload manager sends parts beside each other, and both check what they read.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

const mib = 1 << 20

func must(err error, doing string) {
	if err != nil {
		log.Fatalf("%s: %v", doing, err)
	}
}

func expect(holds bool, what string) {
	if !holds {
		log.Fatalf("does not hold: %s", what)
	}
}

type store struct {
	ctx    context.Context
	client *s3.Client
	bucket *string
}

func (s store) read(key string) []byte {
	got, err := s.client.GetObject(s.ctx, &s3.GetObjectInput{Bucket: s.bucket, Key: &key})
	must(err, "GetObject "+key)
	body, err := io.ReadAll(got.Body)
	must(err, "the body of "+key)
	return body
}

// Objects, their metadata, ranges, conditions, refusals.
func (s store) objects() {
	_, err := s.client.PutObject(s.ctx, &s3.PutObjectInput{Bucket: s.bucket, Key: aws.String("a/b ü"), Body: strings.NewReader("0123456789"),
		Metadata: map[string]string{"side": "go"}, ContentType: aws.String("text/x")})
	must(err, "PutObject")
	part, err := s.client.GetObject(s.ctx, &s3.GetObjectInput{Bucket: s.bucket, Key: aws.String("a/b ü"), Range: aws.String("bytes=2-4")})
	must(err, "GetObject of a range")
	body, _ := io.ReadAll(part.Body)
	expect(string(body) == "234" && part.Metadata["side"] == "go", "the range and the metadata")
	_, err = s.client.PutObject(s.ctx, &s3.PutObjectInput{Bucket: s.bucket, Key: aws.String("empty"), Body: strings.NewReader("")})
	must(err, "PutObject of nothing")
	expect(len(s.read("empty")) == 0, "nothing is read")
	var missing *types.NoSuchKey
	_, err = s.client.GetObject(s.ctx, &s3.GetObjectInput{Bucket: s.bucket, Key: aws.String("none")})
	expect(errors.As(err, &missing), fmt.Sprintf("NoSuchKey: %v", err))
	_, err = s.client.PutObject(s.ctx, &s3.PutObjectInput{Bucket: s.bucket, Key: aws.String("a/b ü"), IfNoneMatch: aws.String("*"), Body: strings.NewReader("x")})
	expect(err != nil && strings.Contains(err.Error(), "PreconditionFailed"), fmt.Sprintf("PreconditionFailed: %v", err))
	_, err = s.client.CopyObject(s.ctx, &s3.CopyObjectInput{Bucket: s.bucket, Key: aws.String("copy"), CopySource: aws.String(*s.bucket + "/a%2Fb%20%C3%BC")})
	must(err, "CopyObject")
	expect(string(s.read("copy")) == "0123456789", "the copy")
}

// The upload and download managers, a stream of unknown length, presigned requests.
func (s store) transfers() {
	body := bytes.Repeat([]byte("0123456789abcdef"), 12*mib/16)
	uploader, downloader := manager.NewUploader(s.client), manager.NewDownloader(s.client)
	// A reader without a length, as JuiceFS and others have.
	_, err := uploader.Upload(s.ctx, &s3.PutObjectInput{Bucket: s.bucket, Key: aws.String("parts"), Body: io.MultiReader(bytes.NewReader(body))})
	must(err, "Upload")
	into := manager.NewWriteAtBuffer(nil)
	_, err = downloader.Download(s.ctx, into, &s3.GetObjectInput{Bucket: s.bucket, Key: aws.String("parts")})
	must(err, "Download")
	expect(bytes.Equal(into.Bytes(), body), "what is downloaded")
	head, err := s.client.HeadObject(s.ctx, &s3.HeadObjectInput{Bucket: s.bucket, Key: aws.String("parts")})
	must(err, "HeadObject")
	expect(strings.HasSuffix(*head.ETag, "-3\""), "three parts: "+*head.ETag)

	signer := s3.NewPresignClient(s.client)
	put, err := signer.PresignPutObject(s.ctx, &s3.PutObjectInput{Bucket: s.bucket, Key: aws.String("presigned")}, s3.WithPresignExpires(time.Minute))
	must(err, "PresignPutObject")
	request, _ := http.NewRequest(http.MethodPut, put.URL, strings.NewReader("by url"))
	request.Header = put.SignedHeader
	reply, err := http.DefaultClient.Do(request)
	must(err, "a presigned PUT")
	expect(reply.StatusCode == http.StatusOK, "a presigned PUT: "+reply.Status)
	expect(string(s.read("presigned")) == "by url", "what a presigned PUT stored")
}

// Pages of a listing, and the deletion of all that they name.
func (s store) listings() {
	var found []types.ObjectIdentifier
	var keys []string
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: s.bucket, MaxKeys: aws.Int32(2)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(s.ctx)
		must(err, "ListObjectsV2")
		for _, object := range page.Contents {
			keys = append(keys, *object.Key)
			found = append(found, types.ObjectIdentifier{Key: object.Key})
		}
	}
	expect(strings.Join(keys, ",") == "a/b ü,copy,empty,parts,presigned", strings.Join(keys, ","))
	deleted, err := s.client.DeleteObjects(s.ctx, &s3.DeleteObjectsInput{Bucket: s.bucket, Delete: &types.Delete{Objects: found}})
	must(err, "DeleteObjects")
	expect(len(deleted.Errors) == 0, "all are deleted")
}

func main() {
	ctx := context.Background()
	loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion("us-east-1"), config.WithBaseEndpoint(os.Args[1]))
	must(err, "the configuration")
	s := store{ctx, s3.NewFromConfig(loaded, func(options *s3.Options) { options.UsePathStyle = true }), &os.Args[2]}
	_, err = s.client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: s.bucket})
	must(err, "CreateBucket")
	must(s3.NewBucketExistsWaiter(s.client).Wait(ctx, &s3.HeadBucketInput{Bucket: s.bucket}, time.Minute), "the bucket")
	s.objects()
	s.transfers()
	s.listings()
	_, err = s.client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: s.bucket})
	must(err, "DeleteBucket")
}
